-- Ends the layout of a topic that has no timers. The result is 'done', or 'full' if there are some.

if call('EXISTS', TIMELINE) == 1 then return reply({'full'}) end
call('DEL', STATE, LEASES, ENDS)
return reply({'done'})
