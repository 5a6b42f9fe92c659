"""People and situations: described people take the roles of a situation, which makes a scenario of it."""
