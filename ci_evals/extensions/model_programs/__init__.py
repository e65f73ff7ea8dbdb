"""Models behind programs of this machine, which answer questions by their own logins."""
