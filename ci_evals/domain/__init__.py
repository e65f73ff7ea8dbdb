"""The ground floor: frozen values of the domain and the rules between them."""
