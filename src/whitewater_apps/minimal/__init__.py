"""Wind at weather stations: the smallest complete application, to read in an hour and to start from."""
