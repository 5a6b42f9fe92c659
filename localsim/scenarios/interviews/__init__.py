"""Banks of interviews: reading their files, making their items for people, and the scenarios that ask them."""
