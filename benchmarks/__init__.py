"""What needs other libraries or minutes: the goals as one table, the comparison with peers, the plots."""
