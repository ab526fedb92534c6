-- Ends the layout of a topic that has no timers. Argument: 1 to end it in any case, because the
-- topic could not get it: timers stay the package's. The result is 'done', or 'full' if there are
-- timers.

if ARGV[3] ~= '1' and call('EXISTS', TIMELINE) == 1 then return reply({'full'}) end
call('DEL', STATE, LEASES, ENDS)
return reply({'done'})
