import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { SERVICE_NAMES } from '../../../contracts/index.ts';
import { countSealedByKey } from '../../../store/sqlite/snapshot.ts';
import { currentMasterKey } from '../../../supervisor/master-key.ts';
import { type CheckTarget, type Fact, failure, fine, warning } from './check.ts';

const MIN_SECRET_BYTES = 32;
const MIN_TOKEN_CHARS = 20;
const MASTER_KEY_BYTES = 32;
const NEW_SECRET = 'Generate one with openssl rand -base64 48.';
/** Matches secrets that are common in examples. Attackers try these secrets first. */
const COMMON_SECRET =
  /^(?:\$\{|change-?me|secret|password|test|dev(?:elopment)?|token|default|svc)\b|insecure|example|(.)\1{7}/i;

/** Checks for secrets that are guessable or that other users can read. */
export function checkSecrets(target: CheckTarget): Fact[] {
  const facts = [
    ...environmentSecrets(target),
    ...staticTokens(target),
    ...unauthenticatedServices(target),
    ...secretsOfOtherKeys(target),
    ...trackedEnvFile(target),
  ];
  return facts.length > 0 ? facts : [fine('no guessable secrets')];
}

function environmentSecrets({ env, loaded }: CheckTarget): Fact[] {
  const isProduction = loaded.profile === 'production';
  const missing =
    isProduction && !env.GATEWAY_JWT_SECRET
      ? [
          failure(
            'GATEWAY_JWT_SECRET is not set, so the gateway will not start in production.',
            'Run svc init --production to write one to .env.',
          ),
        ]
      : [];
  const report = isProduction ? failure : warning;
  const weak = ['GATEWAY_JWT_SECRET', 'GATEWAY_JWT_SECRET_PREVIOUS', 'GATEWAY_INTERNAL_SECRET'].flatMap(
    (name) => {
      const value = env[name];
      if (!value) return [];
      if (Buffer.byteLength(value) < MIN_SECRET_BYTES)
        return [
          report(`${name} is shorter than ${MIN_SECRET_BYTES} bytes and can be brute-forced.`, NEW_SECRET),
        ];
      return COMMON_SECRET.test(value) ? [report(`${name} looks like an example value.`, NEW_SECRET)] : [];
    },
  );
  const { GATEWAY_JWT_SECRET: jwt, GATEWAY_INTERNAL_SECRET: internal, SVC_MASTER_KEY: master } = env;
  if (jwt && jwt === internal)
    weak.push(report('GATEWAY_JWT_SECRET and GATEWAY_INTERNAL_SECRET are identical.', NEW_SECRET));
  if (master && Buffer.from(master, 'base64url').length !== MASTER_KEY_BYTES)
    weak.push(
      failure(
        `SVC_MASTER_KEY is not ${MASTER_KEY_BYTES} bytes in base64url, so no service will start.`,
        'Unset it to use the master key in keys.json.',
      ),
    );
  return [...missing, ...weak];
}

function staticTokens({ loaded }: CheckTarget): Fact[] {
  const tokens = Object.entries(loaded.config.gateway.staticTokens);
  return tokens.flatMap(([token, { hostId, namespaceId }]) =>
    token.length >= MIN_TOKEN_CHARS && !COMMON_SECRET.test(token)
      ? []
      : [
          warning(
            `The static token of ${hostId} (${namespaceId}) is guessable and never expires.`,
            `Use a longer one, or svc tokens mint ${hostId} for one that expires.`,
          ),
        ],
  );
}

/** Reports services that accept anonymous calls from other machines. These calls bypass the gateway. */
function unauthenticatedServices({ loaded }: CheckTarget): Fact[] {
  const { config } = loaded;
  if (config.auth.mode === 'required') return [];
  const open = SERVICE_NAMES.filter((name) => name !== 'gateway' && !isLoopback(config[name].host));
  return open.map((name) =>
    failure(
      `${name} listens on ${config[name].host} and accepts anonymous calls (auth.mode optional).`,
      'Set auth.mode to required, or use the production profile.',
    ),
  );
}

/**
 * Reports stored secrets that are encrypted with another master key. Returns a warning if that key is a previous key.
 * Returns a failure if that key is unknown.
 */
function secretsOfOtherKeys({ folder, env }: CheckTarget): Fact[] {
  const file = join(folder.root, 'svc.db');
  const current = currentMasterKey(folder, env);
  if (!current || !existsSync(file)) return [];
  const counts = [...countSealedByKey(file)].filter(([id]) => id !== current.id);
  const source = current.from === 'environment' ? 'SVC_MASTER_KEY' : 'keys.json';
  return counts.map(([id, count]) => {
    const secrets = count === 1 ? '1 secret was' : `${count} secrets were`;
    return current.previous.includes(id)
      ? warning(
          `${secrets} encrypted with the previous master key (${id}), and not yet with ${current.id}.`,
          'Stop the platform with svc down, and run svc keys rotate.',
        )
      : failure(
          `${secrets} encrypted with another master key than the one in ${source} (${id} instead of ${current.id}), and cannot be decrypted.`,
          'Set SVC_MASTER_KEY_PREVIOUS to that key and run svc keys rotate, or set these secrets again.',
        );
  });
}

const isLoopback = (host: string): boolean => host === 'localhost' || host === '::1' || /^127\./.test(host);

function trackedEnvFile({ loaded: { projectDir } }: CheckTarget): Fact[] {
  if (!existsSync(join(projectDir, '.env')) || !isTracked(projectDir)) return [];
  return [
    failure(
      '.env is under version control, so everyone with access to the repository has its secrets.',
      'git rm --cached .env, add it to .gitignore, and replace its secrets.',
    ),
  ];
}

function isTracked(projectDir: string): boolean {
  try {
    execFileSync('git', ['ls-files', '--error-unmatch', '.env'], {
      cwd: projectDir,
      stdio: 'ignore',
      timeout: 3000,
    });
    return true;
  } catch {
    return false;
  }
}
