"""What is compared: edrbo's methods and what people would use instead, behind one interface."""
