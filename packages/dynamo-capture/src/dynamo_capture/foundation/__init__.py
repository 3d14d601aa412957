"""What the rest stands on: errors, the catalogue of graph breaks, facts about classes, and whose code is captured."""
