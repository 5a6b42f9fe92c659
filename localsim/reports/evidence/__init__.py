"""What a report rests on: if the talks play, what was said in them, and what people, models and judges answered."""
