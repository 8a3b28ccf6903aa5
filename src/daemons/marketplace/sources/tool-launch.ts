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
 * Environment variables that npm and git do not inherit. Variables of the platform may contain secrets. NODE_OPTIONS is
 * meant for the platform's process; npm gets a value of its own.
 */
const WITHHELD = /^(?:SVC_|GATEWAY_|NODE_OPTIONS$)/;

/**
 * npm needs no child processes here, so Node's permission model denies them. A git dependency would make npm
 * run git and scripts of the fetched folder; only newer versions can disable that (`--allow-git`).
 */
const NPM_NODE_OPTIONS = [
  '--permission',
  '--allow-fs-read=*',
  '--allow-fs-write=*',
  ...(process.allowedNodeEnvironmentFlags.has('--allow-net') ? ['--allow-net'] : []),
  '--no-warnings',
].join(' ');

/** Returns the start command of a tool in the environment's PATH. */
export function toolLaunch(tool: Tool, environment: NodeJS.ProcessEnv): ToolLaunch {
  const inherited = Object.entries(environment).filter(([name]) => !WITHHELD.test(name));
  const env = { ...Object.fromEntries(inherited), ...SETTINGS };
  if (tool === 'git') return { command: tool, before: [], env };
  const file = locate(tool, environment.PATH);
  // Runs npm with the Node of this process: the Node in PATH may not support these options.
  const [command, before] = file?.endsWith('.js') ? [process.execPath, [file]] : [tool, []];
  return { command, before, env: { ...env, NODE_OPTIONS: NPM_NODE_OPTIONS } };
}
