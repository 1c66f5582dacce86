"""What was asked, told and seen, as immutable values. NumPy only: keeping records is apart from thinking about them."""
