-- The newest head over entries of which D1 holds all, as the log signed it. A log whose storage was set back finds by it what
-- it had acknowledged: rows alone anybody who writes to D1 could have put there.

ALTER TABLE logs ADD COLUMN checkpoint TEXT;
