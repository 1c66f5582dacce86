"""Exact expectations, optima and worst cases of the problems, by quadrature."""
