import { formatDuration } from '../../../kit/duration.ts';
import type { BrokenPlugin, SupervisorEvent, SupervisorStatus } from '../../supervisor/control-protocol.ts';
import type { Ui } from '../../ui.ts';

/** What happens to the services, a line each. */
export function announce(event: SupervisorEvent, ui: Ui): void {
  if (event.type === 'waiting') ui.noteOf(event, ({ reason }, { dim }) => `${dim('…')} waiting: ${reason}`);
  else if (event.type === 'ready')
    ui.noteOf(event, ({ service, url, tookMs }, { green, dim }) => {
      const took = dim(`ready after ${formatDuration(tookMs)}`);
      return `${green('✓')} ${service.padEnd(11)} ${url}  ${took}`;
    });
  else if (event.type === 'crashed')
    ui.warnOf(
      event,
      ({ service, reason, retryInMs }) => `${service} ended (${reason}); it starts again in ${retryInMs}ms`,
    );
  else if (event.type === 'crash-loop') announceCrashLoop(event, ui);
  else
    ui.noteOf(
      event,
      ({ service, killed }, { dim }) => `${dim('■')} ${service} stopped${killed ? ' by force' : ''}`,
    );
}

function announceCrashLoop(event: Extract<SupervisorEvent, { type: 'crash-loop' }>, ui: Ui): void {
  const { service, crashes, retryInMs, reason, lastLines } = event;
  ui.warn(`${service} ended ${crashes} times in a row; it starts again in ${formatDuration(retryInMs)}.`);
  ui.warnOf(reason, (text) => `  ${text}`);
  for (const line of lastLines) ui.noteOf(line, (text, { dim }) => dim(`  | ${text}`));
  ui.note(`  To start it at once: svc restart ${service}`);
}

/** What is known once all services are ready. */
export interface Started {
  status: SupervisorStatus;
  firstStart: boolean;
  brokenPlugins: BrokenPlugin[];
}

/** Where it runs, and what does not; at the first start also what to do next. */
export function announceReady({ status, firstStart, brokenPlugins }: Started, ui: Ui): void {
  const { note } = ui;
  const gateway = status.services.find(({ name }) => name === 'gateway')?.url;
  ui.noteOf(
    status,
    ({ profile, dataDir }, { bold }) => `${bold('svc is running')} (profile ${profile}, data in ${dataDir}).`,
  );
  for (const broken of brokenPlugins)
    ui.warnOf(broken, ({ id, message }) => `The plugin ${id} is left out: ${message}`);
  if (brokenPlugins.length > 0) note(`  svc plugins show ${brokenPlugins[0]?.id} lists every fault.`);
  if (!firstStart) return;
  note('');
  note("This first start made keys and the operator's credentials in that folder;");
  note('keep it private. What to do next:');
  note('  svc plugins create <name>                 a plugin of your own');
  note('  svc webhooks provision <plugin> <event>   make its secret');
  note(`  ${`open ${gateway}/docs-all`.padEnd(40)}  the API, with a browser`);
  note('  svc status, svc logs -f, svc down         look at it, follow it, stop it');
}
