import { render } from 'preact';
import { App } from './app/app.tsx';
import { applyTheme } from './app/theme.ts';
import './styles/base.css';

applyTheme();
render(<App />, document.getElementById('app')!);
