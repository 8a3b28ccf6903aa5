/**
 * Pattern of the name of a secret. The file imports nothing, because the config needs the pattern: a bundle in which
 * `secrets.ts` and the config import each other fails at the start.
 */
export const SECRET_NAME = '[A-Z][A-Z0-9_]{0,63}';

/** A reference of the config to an environment variable, or to a stored secret. */
export const SECRET_REF = new RegExp(`^\\$\\{(?:[A-Za-z_]\\w*|secret:${SECRET_NAME})\\}$`);
