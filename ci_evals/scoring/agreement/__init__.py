"""How far judges, people and repeated votes agree, and what the noise comes from."""
