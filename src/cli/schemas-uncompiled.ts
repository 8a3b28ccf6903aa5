import { config } from 'zod';

// A command parses only once or twice, so compiled parsers cost more than they save. zod reads this setting when a schema is
// created, so this module must be imported first.
config({ jitless: true });
