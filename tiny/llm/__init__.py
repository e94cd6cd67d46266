"""A language model on top of it all: model files, tokenizer, chat templates, generation."""
