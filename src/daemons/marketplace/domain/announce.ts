import type { LockEntry } from '../../../contracts/index.ts';
import type { Analytics } from '../../../kit/telemetry/analytics.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';

export type MarketplaceAction =
  | 'installed'
  | 'updated'
  | 'linked'
  | 'enabled'
  | 'disabled'
  | 'uninstalled'
  | 'unlinked';

/**
 * Reports a completed change as an analytics event and a diagnostic. @spec Analytics events: marketplace
 * actions
 */
export function createAnnounce(
  analytics: Analytics,
  logger: Logger,
): (action: MarketplaceAction, entry: LockEntry) => void {
  return (action, { id, version, source, resolved }) => {
    analytics.track(`marketplace.plugin.${action}`, { runId: '', payload: { pluginId: id, version } });
    logger.diagnostic(
      {
        domain: 'plugins',
        event: `plugin.${action}`,
        level: 'info',
        reasonCode: action.toUpperCase(),
        message: `${action}: ${id} ${version}`,
        outcome: 'succeeded',
        evidence: { version, source, resolved },
      },
      { pluginId: id },
    );
  };
}
