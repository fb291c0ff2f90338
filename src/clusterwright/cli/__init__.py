"""Arguments in, text or JSON out. Decides nothing; calls only `app`."""
