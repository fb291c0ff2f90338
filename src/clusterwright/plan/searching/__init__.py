"""Every way to split a model over a pool's GPUs: which are possible, what they need and do, which is best.

Plain numbers and columns of them; here live no figures with origins, no text beyond reasons, no architecture file.
"""
