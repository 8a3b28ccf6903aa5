import { locate } from '../../../kit/locate.ts';

export type Tool = 'npm' | 'git';

export interface ToolLaunch {
  command: string;
  /** Arguments that go before the tool's own. */
  before: string[];
  env: NodeJS.ProcessEnv;
}

/** Nobody is asked anything. */
const SETTINGS = { GIT_TERMINAL_PROMPT: '0', npm_config_yes: 'true' };
/** The platform's own secrets stay here: what npm and git call is not ours. */
const WITHHELD = /^(?:SVC_|GATEWAY_|NODE_OPTIONS$)/;

/**
 * What npm does for us needs no other program, so Node's permission model keeps it from starting any. A package from git
 * would have it call git and prepare what that brought, in a folder whose settings name programs and options of Node;
 * only newer ones can be told to take none (`--allow-git`), and no list of settings to overrule would be whole.
 */
const NPM_NODE_OPTIONS = [
  '--permission',
  '--allow-fs-read=*',
  '--allow-fs-write=*',
  ...(process.allowedNodeEnvironmentFlags.has('--allow-net') ? ['--allow-net'] : []),
  '--no-warnings',
].join(' ');

/** How a tool of the environment's PATH is started. */
export function toolLaunch(tool: Tool, environment: NodeJS.ProcessEnv): ToolLaunch {
  const inherited = Object.entries(environment).filter(([name]) => !WITHHELD.test(name));
  const env = { ...Object.fromEntries(inherited), ...SETTINGS };
  if (tool === 'git') return { command: tool, before: [], env };
  const file = locate(tool, environment.PATH);
  // By our own Node, since the first of the PATH may be one that does not know these options.
  const [command, before] = file?.endsWith('.js') ? [process.execPath, [file]] : [tool, []];
  return { command, before, env: { ...env, NODE_OPTIONS: NPM_NODE_OPTIONS } };
}
