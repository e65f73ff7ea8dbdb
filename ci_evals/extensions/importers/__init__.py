"""The command `import`: suites out of other tools' files, by one importer for each format."""
