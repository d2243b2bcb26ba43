"""What leaves the service by itself: change notifications, webhooks and calendar feeds."""
