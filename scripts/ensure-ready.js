// `pretest`: on a fresh clone, `npm test` installs and builds first.
import { fileURLToPath } from 'node:url';
import { ensureReady } from './ensure.js';

await ensureReady(fileURLToPath(new URL('..', import.meta.url)));
