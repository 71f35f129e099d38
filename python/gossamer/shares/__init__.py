"""The samples of a dataset, dealt to workers that may be lost and come back."""
