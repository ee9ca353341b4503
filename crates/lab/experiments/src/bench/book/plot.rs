//! The figures as bars, one group per scenario, and as CSV.

use std::fmt::Write;
use std::path::Path;

use pares_load::{LabError, LabResult};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Figures, ScenarioFigures};

const SIZE: (u32, u32) = (920, 480);
const FONT: &str = "sans-serif";
const PALETTE: [RGBColor; 4] =
    [RGBColor(31, 98, 182), RGBColor(120, 170, 230), RGBColor(214, 96, 20), RGBColor(150, 60, 160)];
/// Of the width of a scenario so much is bars.
const GROUP: f64 = 0.8;

type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Writes the SVG to `path`, and beside it the CSV.
///
/// # Errors
/// If a file cannot be written.
pub(super) fn save(figures: &Figures, path: &Path) -> LabResult {
    let csv_path = path.with_extension("csv");
    std::fs::write(&csv_path, csv(figures))
        .map_err(LabError::io(format!("writing {}", csv_path.display())))?;
    draw(&figures.scenarios, path)
        .map_err(|error| LabError::Failed(format!("drawing {}: {error}", path.display())))
}

fn csv(figures: &Figures) -> String {
    let mut csv =
        String::from("scenario,engine,runs,mmsg_per_s,mmsg_per_s_best,p50_ns,p99_ns,p999_ns,trades_agree\n");
    for scenario in &figures.scenarios {
        for of in &scenario.engines {
            let speeds = format!("{:.3},{:.3}", of.mmsg_per_s, of.mmsg_per_s_best);
            let times = format!("{},{},{}", of.p50_ns, of.p99_ns, of.p999_ns);
            let (name, engine, agree) = (scenario.scenario, &of.engine, of.trades_agree);
            writeln!(csv, "{name},{engine},{},{speeds},{times},{agree}", of.runs)
                .expect("writing to a string never fails");
        }
    }
    csv
}

fn draw(scenarios: &[ScenarioFigures], path: &Path) -> Drawn {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let engines = scenarios.first().map_or(&[][..], |first| &first.engines);
    let all = scenarios.iter().flat_map(|scenario| &scenario.engines).map(|engine| engine.mmsg_per_s);
    // Room for the legend above the highest bar.
    let top = all.fold(1.0, f64::max) * (1.15 + 0.06 * engines.len() as f64);
    let mut canvas = ChartBuilder::on(&root)
        .caption("one book, one thread, every report written: median of the runs", (FONT, 24))
        .margin(14)
        .x_label_area_size(34)
        .y_label_area_size(84)
        .build_cartesian_2d(0.0..scenarios.len() as f64, 0.0..top)?;
    canvas
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .y_desc("million messages per second")
        .y_label_formatter(&|value| format!("{value:.0}"))
        .label_style((FONT, 16))
        .axis_desc_style((FONT, 18))
        .bold_line_style(RGBColor(225, 225, 225))
        .light_line_style(WHITE)
        .draw()?;
    let width = GROUP / engines.len().max(1) as f64;
    for (place, engine) in engines.iter().enumerate() {
        let colour = PALETTE[place % PALETTE.len()];
        let bar = |(group, scenario): (usize, &ScenarioFigures)| {
            let left = group as f64 + (1.0 - GROUP) / 2.0 + place as f64 * width;
            Rectangle::new([(left, 0.0), (left + width, scenario.engines[place].mmsg_per_s)], colour.filled())
        };
        canvas
            .draw_series(scenarios.iter().enumerate().map(bar))?
            .label(&engine.engine)
            .legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + 20, y + 4)], colour.filled()));
    }
    let style = TextStyle::from((FONT, 16).into_font()).pos(Pos::new(HPos::Center, VPos::Top));
    for (group, scenario) in scenarios.iter().enumerate() {
        let (x, y) = canvas.backend_coord(&(group as f64 + 0.5, 0.0));
        root.draw_text(scenario.scenario, &style, (x, y + 8))?;
    }
    canvas
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .border_style(RGBColor(200, 200, 200))
        .label_font((FONT, 16))
        .draw()?;
    root.present()
}
