"""Acquisition functions: scores of (x, c), risk functionals over c, and the maximizer over x."""
