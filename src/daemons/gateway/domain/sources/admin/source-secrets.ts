import type { SourceSettings } from '../../../../../contracts/index.ts';
import { type Environment, resolveSecret } from '../../../../../kit/config/secret-ref.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { Random } from '../../../../../kit/security/random.ts';
import { receiveRulesOf } from '../../../../../webhooks/receive-rules.ts';
import type { ExpectedSecrets } from '../../webhooks/receive/expected-secrets.ts';
import { checkedSecret, makeSecret } from '../../webhooks/verify/new-secret.ts';
import type { WebhookSecrets } from '../../webhooks/verify/secrets.ts';
import type { DeclaredEntry } from '../declared-sources.ts';
import type { SourceEntry } from '../source-records.ts';
import { catalogueEntry, hasUrlToken, type SourceTargets, sourceKey } from '../source-targets.ts';

export interface SourceSecretsDeps {
  secrets: WebhookSecrets;
  targets: Pick<SourceTargets, 'of'>;
  expected: Pick<ExpectedSecrets, 'open'>;
  random: Random;
}

/** A new secret as it is shown once. */
export interface NewSecret {
  /** Token of the URL, if the URL has one. */
  token?: string;
  /** Empty if the request contained the secret, or if there is none. */
  secret: string;
}

/** Provisions the secrets and tokens of sources. */
export class SourceSecrets {
  readonly #deps: SourceSecretsDeps;

  constructor(deps: SourceSecretsDeps) {
    this.#deps = deps;
  }

  /**
   * Stores a new secret. Without a given one, a secret is generated, unless only the provider can make it. Throws
   * VALIDATION_ERROR for an invalid secret.
   */
  async provision({ source }: SourceEntry, given: string | undefined): Promise<NewSecret> {
    const { namespaceId, name, settings } = source;
    const { secrets, targets, random } = this.#deps;
    const key = sourceKey(namespaceId, name);
    const { auth } = targets.of(key).webhook;
    const hasToken = hasUrlToken(settings);
    if (given !== undefined) this.#checkGiven(settings, given);
    if (given === undefined && !hasToken && isMadeBySender(settings)) return { secret: '' };
    const secret =
      given === undefined ? makeSecret(auth, random) : hasToken ? given : checkedSecret(auth, given);
    await secrets.provision(key, secret, { namespaceInUrl: true });
    return hasToken ? { token: secret, secret: '' } : { secret: given === undefined ? secret : '' };
  }

  /**
   * Opens the window for a secret that the sender hands over, and returns its end in epoch ms. Throws VALIDATION_ERROR
   * if this sender hands over no secret.
   */
  async expect({ source }: SourceEntry, forMs: number): Promise<number> {
    const { namespaceId, name, settings } = source;
    const { secrets, targets, expected, random } = this.#deps;
    const key = sourceKey(namespaceId, name);
    const { webhook } = targets.of(key);
    const { handshakes } = receiveRulesOf(webhook);
    if (hasUrlToken(settings) || !handshakes.some(({ effect }) => effect?.type === 'take-secret'))
      throw new PlatformError(
        'VALIDATION_ERROR',
        `The source ${name} takes no secret from its sender: create one with \`svc sources rotate\`.`,
      );
    // A source needs a secret to receive requests. This random one is never shown; the sender's secret replaces it.
    if (!(await secrets.find(key)))
      await secrets.provision(key, makeSecret(webhook.auth, random), { namespaceInUrl: true });
    return expected.open(key, forMs);
  }

  /** Gives declared sources the secrets that the config references. A changed secret counts as a rotation. */
  async provisionDeclared(declared: readonly DeclaredEntry[], env: Environment): Promise<void> {
    for (const { entry, secret } of declared) {
      const { namespaceId, name } = entry.source;
      const at = `sources.declared.${namespaceId}.${name}.secret`;
      const given = resolveSecret(secret, env, at);
      const stored = await this.#deps.secrets.find(sourceKey(namespaceId, name));
      if (given === undefined ? stored !== undefined : stored?.current.text === given) continue;
      await this.provision(entry, given);
    }
  }

  /** Deletes the secret, if there is one. */
  async revoke(namespaceId: string, name: string): Promise<void> {
    try {
      await this.#deps.secrets.revoke(sourceKey(namespaceId, name));
    } catch (error) {
      if (!(error instanceof PlatformError) || error.code !== 'WEBHOOK_NOT_FOUND') throw error;
    }
  }

  #checkGiven(settings: SourceSettings, given: string): void {
    if (!hasUrlToken(settings)) return;
    if (/^[A-Za-z0-9_-]{22,256}$/.test(given)) return;
    const message = 'must have 22 to 256 letters, digits, _ and -, because it is the token of the URL';
    throw new PlatformError('VALIDATION_ERROR', `The secret ${message}.`, {
      details: { issues: [{ path: 'body.secret', message }] },
    });
  }
}

function isMadeBySender({ provider }: SourceSettings): boolean {
  return catalogueEntry(provider)?.secretFrom === 'sender';
}
