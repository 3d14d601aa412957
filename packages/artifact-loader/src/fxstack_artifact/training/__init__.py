"""Entry points whose results have gradients: a forward and a backward graph as one node of autograd's."""
