"""Changes of files that keep their structure, so that what reads them gets far."""
