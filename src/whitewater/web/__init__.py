"""The web: crawling, WARC files, HTML and URLs."""
