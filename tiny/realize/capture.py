"""placeholder for the capture of submissions"""
def forbid_reading(): pass
def ran(run): pass
