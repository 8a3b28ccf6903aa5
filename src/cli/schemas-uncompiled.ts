import { config } from 'zod';

// Compiling a schema costs more than it saves, because a command parses only once or twice. zod reads this setting when
// a schema is created, so this module must be imported before any schema.
config({ jitless: true });
