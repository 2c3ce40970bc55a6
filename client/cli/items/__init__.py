"""What commands print about the steps inside blocks and loops."""
