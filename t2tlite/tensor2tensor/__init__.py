"""Models that tensor2tensor trained, taken over."""
