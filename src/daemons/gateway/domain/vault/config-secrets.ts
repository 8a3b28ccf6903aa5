import type { PlatformConfig } from '../../../../contracts/index.ts';
import { OPERATOR_NAMESPACE, storedSecretsIn } from '../../../../kit/config/secret-ref.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Vault } from './vault.ts';

/**
 * Warns at the start about stored secrets that `adapters` references and that do not exist. The platform starts
 * nevertheless, because it must run before the secret can be set.
 */
export async function reportMissingSecrets(
  { adapters }: Pick<PlatformConfig, 'adapters'>,
  { vault, logger }: { vault: Pick<Vault, 'list'>; logger: Logger },
): Promise<void> {
  const named = storedSecretsIn(adapters, 'adapters');
  if (named.length === 0) return;
  const stored = new Set((await vault.list(OPERATOR_NAMESPACE)).map(({ name }) => name));
  for (const { key, name } of named) {
    if (stored.has(name)) continue;
    logger.diagnostic({
      domain: 'plugins',
      event: 'adapters.secret_missing',
      level: 'warn',
      reasonCode: 'ADAPTER_NOT_CONFIGURED',
      message: `${key} names the stored secret ${name}, which the namespace ${OPERATOR_NAMESPACE} does not have: calls of this adapter fail until you run svc secrets set ${name} --tenant ${OPERATOR_NAMESPACE}`,
      outcome: 'degraded',
      evidence: { key, secret: name },
    });
  }
}
