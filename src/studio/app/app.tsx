import { useEffect, useState } from 'preact/hooks';
import { ErrorBoundary, LocationProvider, lazy, Route, Router } from 'preact-iso';
import { Failure, Loading } from '../ui/states.tsx';
import { foreignNamespace } from './namespace.ts';
import { NotFound } from './not-found.tsx';
import { RESERVED, Reserved } from './reserved.tsx';
import { restoreSession } from './session.ts';
import { session } from './session-state.ts';
import { Shell } from './shell.tsx';
import { SignIn } from './sign-in.tsx';

// Each screen is a file of its own, so that the first one shown needs little code.
const Overview = lazy(() => import('../screens/overview/overview.tsx'));
const Deliveries = lazy(() => import('../screens/deliveries/deliveries.tsx'));
const Delivery = lazy(() => import('../screens/deliveries/delivery.tsx'));
const Runs = lazy(() => import('../screens/runs/runs.tsx'));
const Run = lazy(() => import('../screens/runs/run.tsx'));
const Inbox = lazy(() => import('../screens/inbox/inbox.tsx'));
const Plugins = lazy(() => import('../screens/plugins/plugins.tsx'));
const Plugin = lazy(() => import('../screens/plugins/plugin.tsx'));
const Webhooks = lazy(() => import('../screens/webhooks/webhooks.tsx'));
const Schedules = lazy(() => import('../screens/schedules/schedules.tsx'));
const Jobs = lazy(() => import('../screens/jobs/jobs.tsx'));
const Hosts = lazy(() => import('../screens/hosts/hosts.tsx'));
const Access = lazy(() => import('../screens/access/access.tsx'));
const Logs = lazy(() => import('../screens/logs/logs.tsx'));
const Audit = lazy(() => import('../screens/audit/audit.tsx'));

export function App() {
  const [error, setError] = useState<Error>();
  useEffect(() => {
    restoreSession().catch(setError);
  }, []);
  if (error) return <Failure error={error} onRetry={() => location.reload()} />;
  if (session.value === undefined) return <Loading what="your session" />;
  if (session.value === null) return <SignIn />;
  return (
    <LocationProvider scope="/studio">
      <ErrorBoundary>
        <Shell session={session.value}>
          <Router key={foreignNamespace() ?? ''}>
            <Route path="/studio/" component={Overview} />
            <Route path="/studio/deliveries" component={Deliveries} />
            <Route path="/studio/deliveries/:webhookId" component={Delivery} />
            <Route path="/studio/runs" component={Runs} />
            <Route path="/studio/runs/:runId" component={Run} />
            <Route path="/studio/inbox" component={Inbox} />
            <Route path="/studio/plugins" component={Plugins} />
            <Route path="/studio/plugins/:pluginId" component={Plugin} />
            <Route path="/studio/webhooks" component={Webhooks} />
            <Route path="/studio/schedules" component={Schedules} />
            <Route path="/studio/jobs" component={Jobs} />
            <Route path="/studio/hosts" component={Hosts} />
            <Route path="/studio/access" component={Access} />
            <Route path="/studio/logs" component={Logs} />
            <Route path="/studio/audit" component={Audit} />
            {RESERVED.map((name) => (
              <Route key={name} path={`/studio/${name}/:rest*`} component={Reserved} />
            ))}
            <Route default component={NotFound} />
          </Router>
        </Shell>
      </ErrorBoundary>
    </LocationProvider>
  );
}
