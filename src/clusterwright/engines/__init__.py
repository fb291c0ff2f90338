"""What runs jobs. One room per engine; none knows another, and none picks its own store or clock."""
