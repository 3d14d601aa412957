"""``python -m fxstack``: the command line."""

from fxstack.cli import main

raise SystemExit(main())
