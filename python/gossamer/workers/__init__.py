"""Who takes part, and how workers find and reach each other."""
