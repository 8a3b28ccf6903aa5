import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { SERVICE_NAMES } from '../../../contracts/index.ts';
import { sealingKeyId } from '../../../kit/keys.ts';
import { sealedSecrets } from '../../../store/sqlite/snapshot.ts';
import { masterKeyInForce } from '../../supervisor/master-key.ts';
import { type Fact, failure, fine, type Patient, warning } from './check.ts';

const MIN_BYTES = 32;
const MIN_TOKEN = 20;
const MASTER_KEY_BYTES = 32;
const NEW_SECRET = 'openssl rand -base64 48 makes one.';
/** What stands in examples, and is tried first by whoever attacks. */
const GUESSED =
  /^(?:\$\{|change-?me|secret|password|test|dev(?:elopment)?|token|default|svc)\b|insecure|example|(.)\1{7}/i;

/** Secrets that others can guess, and ones that lie where others can read them. */
export function checkSecrets(patient: Patient): Fact[] {
  const facts = [
    ...ofEnvironment(patient),
    ...staticTokens(patient),
    ...openDoors(patient),
    ...sealedElsewhere(patient),
    ...inVersionControl(patient),
  ];
  return facts.length > 0 ? facts : [fine('none that can be guessed')];
}

function ofEnvironment({ env, loaded }: Patient): Fact[] {
  const isProduction = loaded.profile === 'production';
  const missing =
    isProduction && !env.GATEWAY_JWT_SECRET
      ? [
          failure(
            'GATEWAY_JWT_SECRET is not set: in production the gateway does not start.',
            'svc init --production writes one to .env.',
          ),
        ]
      : [];
  const say = isProduction ? failure : warning;
  const weak = ['GATEWAY_JWT_SECRET', 'GATEWAY_JWT_SECRET_PREVIOUS', 'GATEWAY_INTERNAL_SECRET'].flatMap(
    (name) => {
      const value = env[name];
      if (!value) return [];
      if (Buffer.byteLength(value) < MIN_BYTES)
        return [say(`${name} is shorter than ${MIN_BYTES} bytes: a graphics card can guess it.`, NEW_SECRET)];
      return GUESSED.test(value) ? [say(`${name} looks like one from an example.`, NEW_SECRET)] : [];
    },
  );
  const { GATEWAY_JWT_SECRET: jwt, GATEWAY_INTERNAL_SECRET: internal, SVC_MASTER_KEY: master } = env;
  if (jwt && jwt === internal)
    weak.push(say('GATEWAY_JWT_SECRET and GATEWAY_INTERNAL_SECRET are one and the same.', NEW_SECRET));
  if (master && Buffer.from(master, 'base64url').length !== MASTER_KEY_BYTES)
    weak.push(
      failure(
        `SVC_MASTER_KEY is not ${MASTER_KEY_BYTES} bytes in base64url: nothing starts with it.`,
        'Unset it to use the one in keys.json.',
      ),
    );
  return [...missing, ...weak];
}

function staticTokens({ loaded }: Patient): Fact[] {
  const tokens = Object.entries(loaded.config.gateway.staticTokens);
  return tokens.flatMap(([token, { hostId, namespaceId }]) =>
    token.length >= MIN_TOKEN && !GUESSED.test(token)
      ? []
      : [
          warning(
            `The static token of ${hostId} (${namespaceId}) can be guessed; it never expires.`,
            `Use a longer one, or svc tokens mint ${hostId} for one that ends.`,
          ),
        ],
  );
}

/** Without identity a service behind the gateway answers anybody who can reach it. */
function openDoors({ loaded }: Patient): Fact[] {
  const { config } = loaded;
  if (config.auth.mode === 'required') return [];
  const open = SERVICE_NAMES.filter((name) => name !== 'gateway' && !isLoopback(config[name].host));
  return open.map((name) =>
    failure(
      `${name} listens on ${config[name].host} and takes calls without identity (auth.mode optional).`,
      'Set auth.mode to required, or use the production profile.',
    ),
  );
}

/** As after a restore without its keys, or with another SVC_MASTER_KEY: such webhooks are provisioned, and every delivery is 500. */
function sealedElsewhere({ folder, env }: Patient): Fact[] {
  const file = join(folder.root, 'svc.db');
  const inForce = masterKeyInForce(folder, env);
  if (!inForce || !existsSync(file)) return [];
  const shut = sealedSecrets(file).filter((sealed) => sealingKeyId(sealed) !== inForce.id);
  if (shut.length === 0) return [];
  return [
    failure(
      `${shut.length === 1 ? '1 webhook secret was' : `${shut.length} webhook secrets were`} sealed with another master key than the one of ${inForce.from === 'environment' ? 'SVC_MASTER_KEY' : 'keys.json'}, and cannot be opened.`,
      'Put that key back, or provision those webhooks again.',
    ),
  ];
}

const isLoopback = (host: string): boolean => host === 'localhost' || host === '::1' || /^127\./.test(host);

function inVersionControl({ loaded: { projectDir } }: Patient): Fact[] {
  if (!existsSync(join(projectDir, '.env')) || !isTracked(projectDir)) return [];
  return [
    failure(
      '.env is under version control: everybody with the repository has its secrets.',
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
