import { locate } from '../../../kit/process/locate-program.ts';

export type Tool = 'npm' | 'git';

export interface ToolLaunch {
  command: string;
  /** Arguments that precede the caller's arguments. */
  before: string[];
  env: NodeJS.ProcessEnv;
}

/** Disables interactive prompts. */
const SETTINGS = { GIT_TERMINAL_PROMPT: '0', npm_config_yes: 'true' };
/**
 * Environment variables that npm and git do not inherit. Variables of the platform can contain secrets. npm gets a
 * separate `NODE_OPTIONS` value.
 */
const WITHHELD = /^(?:SVC_|GATEWAY_|NODE_OPTIONS$)/;

/**
 * Node options for npm. Node's permission model denies child processes, because npm would run git and foreign scripts
 * for a git dependency. Older npm versions have no option against git dependencies.
 */
const NPM_NODE_OPTIONS = [
  '--permission',
  '--allow-fs-read=*',
  '--allow-fs-write=*',
  ...(process.allowedNodeEnvironmentFlags.has('--allow-net') ? ['--allow-net'] : []),
  '--no-warnings',
].join(' ');

/** Returns the command that starts a tool found in the environment's PATH. */
export function toolLaunch(tool: Tool, environment: NodeJS.ProcessEnv): ToolLaunch {
  const inherited = Object.entries(environment).filter(([name]) => !WITHHELD.test(name));
  const env = { ...Object.fromEntries(inherited), ...SETTINGS };
  if (tool === 'git') return { command: tool, before: [], env };
  const file = locate(tool, environment.PATH);
  // npm runs with the Node of this process, because the Node in PATH might not support these options.
  const [command, before] = file?.endsWith('.js') ? [process.execPath, [file]] : [tool, []];
  return { command, before, env: { ...env, NODE_OPTIONS: NPM_NODE_OPTIONS } };
}
