import { Chalk, type ChalkInstance } from 'chalk';
import type { Environment } from '../kit/config/config.ts';

export type Style = ChalkInstance;

/** Creates the colours for one output stream. NO_COLOR and FORCE_COLOR take precedence over terminal detection. */
export function createStyle(stream: { isTTY?: boolean }, env: Environment): Style {
  return new Chalk({ level: wantsColour(stream, env) ? 1 : 0 });
}

function wantsColour(stream: { isTTY?: boolean }, env: Environment): boolean {
  if (env.NO_COLOR) return false;
  if (env.FORCE_COLOR !== undefined) return env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false';
  return stream.isTTY === true && env.TERM !== 'dumb';
}
