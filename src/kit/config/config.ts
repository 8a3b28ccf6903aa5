import { dirname, resolve } from 'node:path';
import { PlatformConfig, PROFILES_KEY, SERVICE_NAMES, type ServiceName } from '../../contracts/index.ts';
import { PlatformError } from '../errors/errors.ts';
import { envOverlay } from './env.ts';
import { type Environment, findConfigFile, findProjectFolder, readConfigText, readDotEnv } from './find.ts';
import { hasPath, isObject, type JsonObject, mergeOver } from './merge.ts';
import { withMountedSecrets } from './mounted-secrets.ts';
import { parseConfigText } from './parse.ts';
import { type ConfigProblem, findProblems, formatPath, type RawProblem } from './problems.ts';
import { chooseProfile, requireProfile } from './profile.ts';
import { dataFolderOf, usesPostgres } from './store-url.ts';

export { CONFIG_FILE, type Environment } from './find.ts';
export type { ConfigProblem } from './problems.ts';

export interface LoadConfigOptions {
  cwd: string;
  /** Process environment. It takes precedence over the `.env` file beside the config. */
  env: Environment;
  /** Value of `--config`: a file, or the folder that contains `svc.config.json`. */
  configFile?: string | undefined;
  profile?: string | undefined;
  /** Ports from `--port name=n`, which take precedence over all other sources. */
  ports?: Partial<Record<ServiceName, number>> | undefined;
}

export interface LoadedConfig {
  /** Merged config. If the config does not set `auth.mode`, the profile determines it. */
  config: PlatformConfig;
  profile: string;
  /**
   * Folder of the config file. Without a config file, this is the nearest folder with platform data, or else the
   * working directory.
   */
  projectDir: string;
  /** Path of the data folder (`.svc`): `SVC_HOME`, or else the folder from the `store` config. */
  dataDir: string;
  configFile: string | null;
  /**
   * Variables of the `.env` file, the process environment and mounted secret files. The process environment overrides
   * the `.env` file.
   */
  env: Environment;
}

/**
 * Loads the config file and the environment. Throws CONFIG_NOT_FOUND, CONFIG_PARSE_ERROR, CONFIG_NOT_RESOLVED or
 * VALIDATION_ERROR. VALIDATION_ERROR lists all problems in `details.problems`. @spec
 * docs/operations.md "Configuration"; Platform codes
 */
export function loadConfig(options: LoadConfigOptions): LoadedConfig {
  const { cwd } = options;
  const configFile = findConfigFile(cwd, options.configFile ?? options.env.SVC_CONFIG);
  const projectDir = configFile ? dirname(configFile) : findProjectFolder(cwd);
  const dotEnv = readDotEnv(projectDir);
  const env = withMountedSecrets({ ...dotEnv, ...options.env });
  const fileContent = configFile ? parseConfigText(readConfigText(configFile), configFile) : {};

  const problems: ConfigProblem[] = [];
  const { base, profiles } = splitProfiles(fileContent, problems);
  const choice = chooseProfile(options.profile, env);
  requireProfile(choice, Object.keys(profiles), configFile);
  problems.push(...problemsOfFile(base, profiles));

  const fromEnv = envOverlay(env);
  problems.push(...fromEnv.problems);
  const merged = [profiles[choice.name] ?? {}, fromEnv.overlay, portOverlay(options.ports ?? {})].reduce(
    mergeOver,
    base,
  );
  if (problems.length > 0) throw invalidConfig(problems, configFile);

  const config = PlatformConfig.parse(merged);
  problems.push(...portClashes(config), ...storeProblems(config));
  if (problems.length > 0) throw invalidConfig(problems, configFile);

  config.auth.mode ??= choice.name === 'production' ? 'required' : 'optional';
  return {
    config,
    profile: choice.name,
    projectDir,
    dataDir: dataFolder(options, dotEnv, projectDir, config),
    configFile,
    env,
  };
}

function splitProfiles(
  fileContent: unknown,
  problems: ConfigProblem[],
): { base: JsonObject; profiles: Record<string, unknown> } {
  if (!isObject(fileContent)) {
    problems.push({ path: '', message: 'the file must contain one JSON object' });
    return { base: {}, profiles: {} };
  }
  const { [PROFILES_KEY]: profiles = {}, ...base } = fileContent;
  if (isObject(profiles)) return { base, profiles };
  problems.push({ path: PROFILES_KEY, message: 'must be an object of profiles by name' });
  return { base, profiles: {} };
}

/**
 * Checks all profiles, not only the active profile. Mistakes in the `production` profile are then found in development.
 */
function problemsOfFile(base: JsonObject, profiles: Record<string, unknown>): ConfigProblem[] {
  const found = new Map<string, ConfigProblem>();
  const add = (problem: ConfigProblem): unknown => found.set(`${problem.path}\n${problem.message}`, problem);
  if (Object.keys(profiles).length === 0) {
    for (const problem of findProblems(base)) add(inBase(problem));
  }
  for (const [name, overlay] of Object.entries(profiles)) {
    if (!isObject(overlay)) {
      add({ path: formatPath([PROFILES_KEY, name]), message: 'must be an object' });
      continue;
    }
    for (const problem of findProblems(mergeOver(base, overlay)))
      add(hasPath(overlay, problem.path) ? inProfile(name, problem) : inBase(problem));
  }
  return [...found.values()];
}

const inBase = ({ path, message }: RawProblem): ConfigProblem => ({ path: formatPath(path), message });

function inProfile(name: string, { path, message }: RawProblem): ConfigProblem {
  const prefix = formatPath([PROFILES_KEY, name]);
  const inner = formatPath(path);
  return { path: inner.startsWith('[') ? prefix + inner : `${prefix}.${inner}`, message };
}

function portOverlay(ports: Partial<Record<ServiceName, number>>): JsonObject {
  return Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, { port }]));
}

/**
 * Finds ports that several services share. Without this check, the only symptom would be a service that fails to start.
 */
function portClashes(config: PlatformConfig): ConfigProblem[] {
  const taken = new Map<number, ServiceName>();
  return SERVICE_NAMES.flatMap((name) => {
    const { port } = config[name];
    const other = port === 0 ? undefined : taken.get(port);
    taken.set(port, name);
    return other
      ? [
          {
            path: `${name}.port`,
            message: `is ${port}, the same as ${other}.port; each service needs its own port`,
          },
        ]
      : [];
  });
}

function storeProblems({ store }: PlatformConfig): ConfigProblem[] {
  if (usesPostgres(store) || store.dataDir === null) return [];
  return [{ path: 'store.dataDir', message: 'must be null with SQLite; store.url names the data folder' }];
}

function dataFolder(
  { cwd, env }: LoadConfigOptions,
  dotEnv: Environment,
  projectDir: string,
  config: PlatformConfig,
): string {
  if (env.SVC_HOME) return resolve(cwd, env.SVC_HOME);
  if (dotEnv.SVC_HOME) return resolve(projectDir, dotEnv.SVC_HOME);
  return resolve(projectDir, dataFolderOf(config.store));
}

function invalidConfig(problems: ConfigProblem[], configFile: string | null): PlatformError {
  const where = configFile ?? 'the environment';
  const count = problems.length === 1 ? 'one problem' : `${problems.length} problems`;
  const list = problems.map(({ path, message }) => `  ${path || '(file)'}: ${message}`).join('\n');
  return new PlatformError('VALIDATION_ERROR', `The configuration (${where}) has ${count}:\n${list}`, {
    details: { file: configFile, problems },
  });
}
