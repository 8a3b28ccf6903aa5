import { fileURLToPath } from 'node:url';

/** Where the fixture plugins lie. */
export const FIXTURES = fileURLToPath(new URL('../fixtures/plugins', import.meta.url));
