"""Shows what an element makes of some rows without deploying it, by the code that a deployed one runs."""
