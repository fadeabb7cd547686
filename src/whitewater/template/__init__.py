"""Projects made from an application: rendered under another name, with the library's wheel, and updated by git."""
