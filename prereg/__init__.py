"""From a forecast to a signed commitment and back."""
