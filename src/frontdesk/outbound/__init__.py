"""What the service sends by itself: change notifications, webhooks and calendar feeds."""
