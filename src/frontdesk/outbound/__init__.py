"""What the service sends by itself: change notifications and webhooks."""
